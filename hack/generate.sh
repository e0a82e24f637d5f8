#!/usr/bin/env bash
# Makes everything that is made from the types under pkg/apis: deep copies, CustomResourceDefinitions, and the typed
# clients, listers and informers. It also puts the parts of the installer into one file. Running it twice changes
# nothing; CI runs it and fails on a difference:
#
#   hack/generate.sh && git diff --exit-code
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0

module=$(go list -m)
header=hack/boilerplate.go.txt
apis=$module/pkg/apis
client=$module/pkg/client
groups=(batch/v1alpha1 bus/v1alpha1 flow/v1alpha1 kueue/v1beta2 scheduling/v1beta1 topology/v1alpha1)
packages=("${groups[@]/#/$apis/}")

go tool controller-gen object:headerFile=$header paths=./pkg/apis/...

rm -f installer/crds/*.yaml
go tool controller-gen crd:generateEmbeddedObjectMeta=true paths=./pkg/apis/... output:crd:dir=installer/crds
go run ./pkg/apis/internal/crddoc --forms=JobTemplate,CronJob.jobTemplate --older=kueue.x-k8s.io/v1beta1 installer/crds template volumeClaim

# Into a fresh place first: the generators leave files of types that are gone, and an interrupted run must not leave the
# tree without its clients.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go tool client-gen --go-header-file=$header --clientset-name=versioned --fake-clientset=false \
  --input-base="$apis" "${groups[@]/#/--input=}" \
  --output-dir="$work/clientset" --output-pkg="$client/clientset"
go tool lister-gen --go-header-file=$header \
  --output-dir="$work/listers" --output-pkg="$client/listers" "${packages[@]}"
go tool informer-gen --go-header-file=$header \
  --versioned-clientset-package="$client/clientset/versioned" --listers-package="$client/listers" \
  --output-dir="$work/informers" --output-pkg="$client/informers" "${packages[@]}"

for part in clientset listers informers; do
  rm -rf "pkg/client/$part"
  cp -R "$work/$part" "pkg/client/$part"
done

# One source: what is applied without Helm is what the chart makes of the values it comes with, and the namespace, which
# Helm makes itself. hack/helm.mod pins the helm that does it, apart from go.mod so that its needs move no version there.
{
  echo '# Installs Hekla: kubectl apply -f hekla.yaml. Made by hack/generate.sh of installer/namespace.yaml and of the chart'
  echo '# installer/helm/hekla, with the values it comes with.'
  cat installer/namespace.yaml
  go tool -modfile=hack/helm.mod helm template hekla installer/helm/hekla --namespace volcano-system 2> "$work/helm.log" ||
    { cat "$work/helm.log" >&2; exit 1; }
} > "$work/hekla.yaml"
mv "$work/hekla.yaml" installer/hekla.yaml
