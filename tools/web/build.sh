#!/bin/sh
# Builds the web pages into dist/web, unless their sources are unchanged.
set -eu
stamp=dist/web.built
if [ -d dist/web ] && [ -f $stamp ] &&
  [ -z "$(find web gen src docs examples/README.md ./*.md package-lock.json -newer $stamp | head -n 1)" ]; then
  exit
fi
rm -f $stamp
touch $stamp.started
NODE_ENV=production vite build web --logLevel warn
mv $stamp.started $stamp
