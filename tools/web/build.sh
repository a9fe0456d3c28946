#!/bin/sh
# Builds the pages for people into dist/web, unless nothing that they are made of has changed since.
set -eu
stamp=dist/web.built
if [ -d dist/web ] && [ -f $stamp ] &&
  [ -z "$(find web gen src package-lock.json -newer $stamp | head -n 1)" ]; then
  exit
fi
rm -f $stamp
touch $stamp.begun
NODE_ENV=production vite build web --logLevel warn
mv $stamp.begun $stamp
