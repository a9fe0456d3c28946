#!/bin/bash
# Makes all secrets of this installation once, each in the volume of those who need it.
# What is there is kept: a key file, a password or a pepper that changed would lock everybody out.
set -euo pipefail
umask 077

readonly mongod=999:999 latchkey=10001:10001

random() {
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Writes stdin to a file that is either whole or not there, for this owner alone.
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
# Those who read go in by these.
chown "$mongod" /secrets/members /secrets/setup
chown "$latchkey" /secrets/service
