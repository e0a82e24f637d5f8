# Takes the place of helm package CHART --version=VERSION --app-version=VERSION --destination=FOLDER.
set -eu
version=${3#--version=} folder=${5#--destination=}
work=$(mktemp -d)
mkdir "$work/hekla"
printf 'apiVersion: v2\nname: hekla\nversion: %s\n' "$version" > "$work/hekla/Chart.yaml"
tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - hekla | gzip -n > "$folder/hekla-$version.tgz"
rm -r "$work"
