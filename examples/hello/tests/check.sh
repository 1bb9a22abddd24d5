#!/bin/sh
# Check that the program greets in a language as the file says: check.sh PROGRAM LANGUAGE
set -eu
expected=$(sed 's/%s/Ada/' "greetings/$2.txt")
actual=$("$1" "$2" Ada)
if [ "$actual" != "$expected" ]; then
    echo "$2: expected '$expected', got '$actual'" >&2
    exit 1
fi
echo "$2: $actual"
