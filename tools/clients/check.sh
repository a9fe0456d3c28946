#!/usr/bin/env bash
# Generates clients from the protos and from the OpenAPI document as users do, and compiles them. The
# package managers download the generators: Go (gRPC, Connect and oapi-codegen), Maven (gRPC for Java)
# and npm (openapi-typescript). A language without its compiler is reported as not checked.
set -uo pipefail
cd "$(dirname "$0")"
repository=$PWD/../..
cache=$repository/node_modules/.cache/clients
readonly repository cache
export PATH=$repository/node_modules/.bin:$PATH

# Waits for slow downloads, but not for a stalled one.
readonly limit=10m
readonly openapi_typescript=openapi-typescript@7.13.0

# The options for all files of our own packages. The others are in libraries.
generate() { buf generate "$repository/proto" --path "$repository/proto/latchkey"; }

write_openapi() {
  (cd "$repository" && tsx -e 'import { openapi } from "./gen/openapi.ts"; console.log(JSON.stringify(openapi));')
}

check_go() {
  generate && mkdir -p rest &&
    go tool oapi-codegen -generate types,client -package rest -o rest/client.gen.go ../openapi.json &&
    go build ./...
}

check_java() {
  local system processor
  case $(uname -s) in Darwin) system=osx ;; *) system=linux ;; esac
  case $(uname -m) in arm64 | aarch64) processor=aarch_64 ;; *) processor=x86_64 ;; esac
  local maven=(mvn --batch-mode --no-transfer-progress --quiet "-Dplatform=$system-$processor")
  "${maven[@]}" initialize && chmod +x bin/*.exe && generate && "${maven[@]}" compile
}

check_typescript() {
  npx --yes "$openapi_typescript" ../openapi.json -o client.ts &&
    tsc --ignoreConfig --noEmit --strict --target es2022 --module nodenext client.ts
}

# Runs the check of a language in an empty folder, and prints its output if it fails.
run_check() {
  local language=$1
  local folder=$cache/$language
  rm -rf "$folder" && mkdir -p "$folder" || return
  if [ -d "$language" ]; then cp "$language"/* "$folder" || return; fi
  export -f generate "check_$language"
  export repository openapi_typescript
  if (cd "$folder" && timeout "$limit" bash -c "check_$language" > output.txt 2>&1); then
    echo "The $language client compiles."
  else
    cat "$folder/output.txt"
    echo "FAILED: the $language client cannot be generated and compiled."
    return 1
  fi
}

mkdir -p "$cache"
write_openapi > "$cache/openapi.json" || exit

checks=()
start_check() {
  local language=$1 command
  for command in "${@:2}"; do
    if ! command -v "$command" > /dev/null; then
      echo "The $language client was not checked: $command is not on the PATH."
      return
    fi
  done
  run_check "$language" &
  checks+=($!)
}
start_check go go
start_check java mvn javac
start_check typescript npx

status=0
for check in "${checks[@]}"; do
  wait "$check" || status=1
done
exit $status
