#!/bin/sh
# Greetings are short: style.sh DIRECTORY
status=0
for file in "$1"/*.txt; do
    if [ "$(wc -c <"$file")" -gt 20 ]; then
        echo "$file: longer than 20 characters"
        status=1
    fi
done
exit $status
