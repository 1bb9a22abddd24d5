#!/usr/bin/env pwsh
& {
$ErrorActionPreference = "Stop"
echo "Running on $([Environment]::MachineName)..."
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/gitlab_runner_env") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/masking.db") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
}

