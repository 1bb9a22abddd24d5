#!/usr/bin/env pwsh
& {
$ErrorActionPreference = "Stop"
$env:PLAIN="a `"b`" `$c ``d ``u{1F600} `“quoted`”`n"
$PLAIN=$env:PLAIN
$env:HOME="/root"
$env:GIT_SUBMODULE_STRATEGY="recursive"
$GIT_SUBMODULE_STRATEGY=$env:GIT_SUBMODULE_STRATEGY
Try { "url=https://gitlab.example.com`nusername=gitlab-ci-token`n" | & "git" "credential" "reject" 2>$null | Out-Null } Catch { }
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/gitlab_runner_env") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/masking.db", "/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf", "/srv/builds/abcdefghi/0/group/proj.tmp/.glr.gconf", "/srv/builds/abcdefghi/0/group/proj.tmp/KUBECONFIG", "/srv/builds/.gitlab-build-uid-gid") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git" -PathType Leaf) {
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj/.git") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
}
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/git-template/hooks", "/srv/builds/abcdefghi/0/group/proj.tmp/git-template/config", "/srv/builds/abcdefghi/0/group/proj/.git/index.lock", "/srv/builds/abcdefghi/0/group/proj/.git/shallow.lock", "/srv/builds/abcdefghi/0/group/proj/.git/HEAD.lock", "/srv/builds/abcdefghi/0/group/proj/.git/config.lock", "/srv/builds/abcdefghi/0/group/proj/.git/packed-refs.lock", "/srv/builds/abcdefghi/0/group/proj/.git/hooks/post-checkout", "/srv/builds/abcdefghi/0/group/proj/.git/config", "/srv/builds/abcdefghi/0/group/proj/.git/hooks") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/refs") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/refs" -Recurse -Force -File | Where-Object { $_.Name -like "*.lock" } | Remove-Item -Recurse -Force }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules" -Recurse -Force -Directory | Where-Object { $_.Name -like "hooks" } | Remove-Item -Recurse -Force }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules" -Recurse -Force -File | Where-Object { $_.Name -like "index.lock" -or $_.Name -like "shallow.lock" -or $_.Name -like "HEAD.lock" -or $_.Name -like "config.lock" -or $_.Name -like "packed-refs.lock" -or $_.Name -like "post-checkout" -or $_.Name -like "config" } | Remove-Item -Recurse -Force }
}

