#!/bin/sh
# Make one program out of the greetings: make.sh OUTPUT VERSION
set -eu
output=$1 version=$2
mkdir -p "$(dirname "$output")" .generated

for file in greetings/*.txt; do
    language=$(basename "$file" .txt)
    part=.generated/$language-$(cksum <"$file" | cut -d' ' -f1)
    if [ -e "$part" ]; then
        echo "$language: from the cache"
    else
        echo "$language: generated"
        printf "    %s) printf '%s\\\\n' \"\$name\" ;;\n" "$language" "$(cat "$file")" >"$part"
    fi
    set -- "$@" "$part"
done
shift 2

{
    printf '#!/bin/sh\n# greet %s\nname=${2:-world}\ncase ${1:-en} in\n' "$version"
    cat "$@"
    printf '    *) echo "greet: no greeting in $1" >&2; exit 1 ;;\nesac\n'
} >"$output"
chmod +x "$output"
