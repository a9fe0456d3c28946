#!/bin/sh
# Bundles the service and the command line into dist/src/main.js and its chunks, unless their sources
# are unchanged. Loading hundreds of small modules would be half of the work of a start.
set -eu
chunks=dist/src/chunks
stamp=dist/service.built
if [ -d $chunks ] && [ -f $stamp ] &&
  [ -z "$(find src gen package-lock.json tools/service dist/src/main.js -newer $stamp | head -n 1)" ]; then
  exit
fi
rm -rf $chunks $stamp
# CommonJS packages are not bundled. OpenTelemetry's API must be the one that an operator's modules use.
esbuild src/main.ts --bundle --splitting --platform=node --format=esm --target=node20 \
  --external:@opentelemetry/api --external:commander --external:lmdb --external:mongodb \
  --external:pino --external:prom-client --external:yaml \
  --outdir=dist/src --chunk-names='chunks/[name]-[hash]' --sourcemap --log-level=warning
# As npm makes it when it links the command.
chmod +x dist/src/main.js
touch $stamp
