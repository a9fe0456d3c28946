#!/bin/bash
# Creates all secrets of this installation once, each in the volume of its readers.
# Existing secrets are kept: a new key file, password or pepper would lock everybody out.
set -euo pipefail
umask 077

readonly mongod=999:999 latchkey=10001:10001

random() {
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Writes stdin atomically to a file that only its owner can read.
keep() {
  local file=$1 owner=$2
  cat > "$file.part"
  chown "$owner" "$file.part"
  chmod 400 "$file.part"
  mv "$file.part" "$file"
}

[ -e /secrets/members/keyfile ] || random 378 | keep /secrets/members/keyfile "$mongod"
[ -e /secrets/setup/admin-password ] || random 32 | keep /secrets/setup/admin-password "$mongod"
[ -e /secrets/setup/service-password ] || random 32 | keep /secrets/setup/service-password "$mongod"

if [ ! -e /secrets/service/latchkey.env ]; then
  keep /secrets/service/latchkey.env "$latchkey" << SETTINGS
MONGODB_URI=mongodb://latchkey:$(cat /secrets/setup/service-password)@${MEMBERS}/latchkey?replicaSet=rs0
KEY_PEPPER=$(random 32)
SETTINGS
fi
# Readers need access to the folders.
chown "$mongod" /secrets/members /secrets/setup
chown "$latchkey" /secrets/service
