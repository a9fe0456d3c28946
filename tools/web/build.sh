#!/bin/sh
# Builds the pages for people into dist/web, unless nothing that they are made of has changed since.
set -eu
last_written=dist/web/console/index.html.gz
if [ -f "$last_written" ] &&
  [ -z "$(find web gen src package-lock.json -newer "$last_written" | head -n 1)" ]; then
  exit
fi
NODE_ENV=production exec vite build web --logLevel warn
