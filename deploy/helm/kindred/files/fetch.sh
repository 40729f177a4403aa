#!/bin/sh
# Fetches a file, checks it, and does nothing if what is made of it exists: fetch.sh URL SHA256 FILE FOLDER [unpack]
#
# FILE appears whole and checked, or not at all. Afterwards `kindred prepare --if-missing` makes FOLDER of it; with `unpack`
# this script does, from a .tar.gz. Several pods may share FOLDER's parent, but not FILE.
set -eu
url=$1 sha256=$2 file=$3 folder=$4 unpack=${5:-}

if [ -e "$folder" ]; then
    echo "$folder exists: nothing to fetch"
    exit 0
fi
hash_of() { sha256sum "$1" | cut -d' ' -f1; }
if [ ! -f "$file" ] || [ "$(hash_of "$file")" != "$sha256" ]; then
    curl ${CURL_CONFIG:+--config "$CURL_CONFIG"} --fail --location --silent --show-error \
        --retry "${RETRIES:-5}" --retry-all-errors --connect-timeout 20 --speed-limit 1000 --speed-time 60 \
        --output "$file.part" "$url"
    found=$(hash_of "$file.part")
    if [ "$found" != "$sha256" ]; then
        rm -f "$file.part"
        echo "$url has the SHA-256 $found, not $sha256: correct sha256 in the values, or fetch from elsewhere" >&2
        exit 1
    fi
    mv -f "$file.part" "$file"
fi
if [ -n "$unpack" ]; then
    mkdir -p "$folder.$HOSTNAME"
    tar -xzf "$file" -C "$folder.$HOSTNAME"
    # -T: into a folder that another pod has put there meanwhile, this fails, and that one is used.
    mv -T "$folder.$HOSTNAME" "$folder" || { rm -rf "$folder.$HOSTNAME" && [ -e "$folder" ]; }
fi
