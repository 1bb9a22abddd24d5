#!/usr/bin/env pwsh
& {
$ErrorActionPreference = "Stop"
New-Item -ItemType directory -Force -Path "/srv/builds/abcdefghi/0/group/proj.tmp" | Out-Null
$env:PLAIN="a `"b`" `$c ``d ``u{1F600} `“quoted`”`n"
$PLAIN=$env:PLAIN
[System.IO.File]::WriteAllText("/srv/builds/abcdefghi/0/group/proj.tmp/KUBECONFIG", "secret`n", (New-Object System.Text.UTF8Encoding($false)))
$env:KUBECONFIG="/srv/builds/abcdefghi/0/group/proj.tmp/KUBECONFIG"
$KUBECONFIG=$env:KUBECONFIG
$env:HOME="/root"
$env:GIT_SUBMODULE_STRATEGY="recursive"
$GIT_SUBMODULE_STRATEGY=$env:GIT_SUBMODULE_STRATEGY
$env:GITLAB_ENV="/srv/builds/abcdefghi/0/group/proj.tmp/gitlab_runner_env"
$GITLAB_ENV=$env:GITLAB_ENV
if(!(Test-Path -LiteralPath $env:GITLAB_ENV)) { New-Item -ItemType file -Path $env:GITLAB_ENV | Out-Null }
foreach($glr_line in (Get-Content -LiteralPath $env:GITLAB_ENV)) {
$glr_key, $glr_value = $glr_line -split "=", 2
if($glr_key -match "^[A-Za-z_][A-Za-z0-9_]*$" -and $null -ne $glr_value) {
Set-Item -LiteralPath "env:$glr_key" -Value $glr_value
Set-Variable -Name $glr_key -Value $glr_value -ErrorAction SilentlyContinue
}
}
$env:GIT_TERMINAL_PROMPT="0"
$GIT_TERMINAL_PROMPT=$env:GIT_TERMINAL_PROMPT
$env:GCM_INTERACTIVE="Never"
$GCM_INTERACTIVE=$env:GCM_INTERACTIVE
echo "[32;1m`$ echo hook[0;m"
echo hook
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
$env:GIT_LFS_SKIP_SMUDGE="1"
$GIT_LFS_SKIP_SMUDGE=$env:GIT_LFS_SKIP_SMUDGE
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git" -PathType Leaf) {
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj/.git") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
}
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/git-template/hooks", "/srv/builds/abcdefghi/0/group/proj.tmp/git-template/config", "/srv/builds/abcdefghi/0/group/proj/.git/index.lock", "/srv/builds/abcdefghi/0/group/proj/.git/shallow.lock", "/srv/builds/abcdefghi/0/group/proj/.git/HEAD.lock", "/srv/builds/abcdefghi/0/group/proj/.git/config.lock", "/srv/builds/abcdefghi/0/group/proj/.git/packed-refs.lock", "/srv/builds/abcdefghi/0/group/proj/.git/hooks/post-checkout", "/srv/builds/abcdefghi/0/group/proj/.git/config", "/srv/builds/abcdefghi/0/group/proj/.git/hooks") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/refs") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/refs" -Recurse -Force -File | Where-Object { $_.Name -like "*.lock" } | Remove-Item -Recurse -Force }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules" -Recurse -Force -Directory | Where-Object { $_.Name -like "hooks" } | Remove-Item -Recurse -Force }
if(Test-Path -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules") { Get-ChildItem -LiteralPath "/srv/builds/abcdefghi/0/group/proj/.git/modules" -Recurse -Force -File | Where-Object { $_.Name -like "index.lock" -or $_.Name -like "shallow.lock" -or $_.Name -like "HEAD.lock" -or $_.Name -like "config.lock" -or $_.Name -like "packed-refs.lock" -or $_.Name -like "post-checkout" -or $_.Name -like "config" } | Remove-Item -Recurse -Force }
New-Item -ItemType directory -Force -Path "/srv/builds/abcdefghi/0/group/proj.tmp/git-template" | Out-Null
foreach($glr_path in "/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf") { if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }
[System.IO.File]::WriteAllText("/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf", "[http]`n`textraHeader = `"X-Gitaly-Correlation-ID: 01ABC`"`n[transfer]`n`tbundleURI = true`n[url `"https://gitlab-ci-token:glcbt-job@gitlab.example.com/group/proj.git`"]`n`tinsteadOf = `"https://gitlab.example.com/group/proj.git`"`n[url `"https://gitlab-ci-token:glcbt-job@gitlab.example.com/`"]`n`tinsteadOf = `"https://gitlab.example.com/`"`n", (New-Object System.Text.UTF8Encoding($false)))
if($IsLinux -or $IsMacOS) { & "chmod" "600" "/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf" }
echo "[32;1mGitaly correlation ID: 01ABC[0;m"
[System.IO.File]::WriteAllText("/srv/builds/abcdefghi/0/group/proj.tmp/git-template/config", "[init]`n`tdefaultBranch = none`n[fetch]`n`trecurseSubmodules = false`n[credential]`n`tinteractive = never`n[gc]`n`tautoDetach = false`n[include]`n`tpath = `"/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf`"`n", (New-Object System.Text.UTF8Encoding($false)))
$env:GLR_EXT_GIT_CONFIG_PATH="/srv/builds/abcdefghi/0/group/proj.tmp/.gitlab-runner.ext.conf"
$GLR_EXT_GIT_CONFIG_PATH=$env:GLR_EXT_GIT_CONFIG_PATH
echo "[32;1mFetching changes with git depth set to 20...[0;m"
& "git" "init" "/srv/builds/abcdefghi/0/group/proj" "--template" "/srv/builds/abcdefghi/0/group/proj.tmp/git-template"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
Set-Location -LiteralPath "/srv/builds/abcdefghi/0/group/proj"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
$glr_failed = $false
Try { & "git" "remote" "set-url" "origin" "https://gitlab.example.com/group/proj.git" 2>$null | Out-Null; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
& "git" "config" "--replace-all" "include.path" "$($env:GLR_EXT_GIT_CONFIG_PATH)"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
} else {
$glr_failed = $false
Try { & "git" "remote" "add" "origin" "https://gitlab.example.com/group/proj.git" 2>$null | Out-Null; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mCreated fresh repository.[0;m"
} else {
& "git" "remote" "remove" "origin"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "remote" "add" "origin" "https://gitlab.example.com/group/proj.git"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
echo "[32;1mCreated fresh repository.[0;m"
}
}
& "git" "-c" "http.userAgent=gitlab-runner 19.4.0 linux/amd64" "fetch" "origin" "--no-recurse-submodules" "+refs/heads/main:refs/remotes/origin/main" "--depth" "20" "--prune" "--quiet"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
echo "[32;1mChecking out 91e03667 as detached HEAD (ref is main)...[0;m"
& "git" "-c" "submodule.recurse=false" "checkout" "-f" "-q" "91e03667ad1b5e9b8f5b1a5a3f1f9c4a0a6d7c11"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "clean" "-ffdx"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
$glr_failed = $false
Try { & "git" "lfs" "version" 2>$null | Out-Null; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
& "git" "lfs" "pull"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
echo ""
}
echo "[32;1mUpdating/initializing submodules recursively with git depth set to 20...[0;m"
& "git" "submodule" "init"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "submodule" "sync" "--recursive"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "submodule" "foreach" "--recursive" "git clean -ffdx"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "submodule" "foreach" "--recursive" "git reset --hard"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
$glr_failed = $false
Try { & "git" "-c" "include.path=$($env:GLR_EXT_GIT_CONFIG_PATH)" "submodule" "update" "--init" "--recursive" "--depth" "20"; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mUpdated submodules[0;m"
& "git" "submodule" "sync" "--recursive"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
} else {
echo "[0;33mUpdating submodules failed. Retrying...[0;m"
& "git" "submodule" "sync" "--recursive"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "-c" "include.path=$($env:GLR_EXT_GIT_CONFIG_PATH)" "submodule" "update" "--init" "--recursive" "--depth" "20"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
& "git" "submodule" "foreach" "--recursive" "git reset --hard"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
}
& "git" "submodule" "foreach" "--recursive" "git clean -ffdx"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
echo "[32;1mConfiguring submodules to use parent git credentials...[0;m"
& "git" "submodule" "foreach" "--quiet" "--recursive" "git config --replace-all include.path `"`$GLR_EXT_GIT_CONFIG_PATH`""
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
$glr_failed = $false
Try { & "git" "lfs" "version" 2>$null | Out-Null; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mPulling LFS files...[0;m"
& "git" "submodule" "foreach" "--recursive" "git lfs pull"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
}
Try { "url=https://gitlab.example.com`nusername=gitlab-ci-token`n" | & "git" "credential" "reject" 2>$null | Out-Null } Catch { }
}

