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
Set-Location -LiteralPath "/srv/builds/abcdefghi/0/group/proj"
if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }
if(Get-Command "gitlab-runner" -ErrorAction SilentlyContinue) {
echo "[32;1mCreating cache k...[0;m"
$env:CACHE_METADATA="{`"cachekey`": `"k`"}"
$glr_failed = $false
Try { & "gitlab-runner" "cache-archiver" "--file" "../../../../../cache/group/proj/k/cache.zip" "--alternate-file" "../../../../../cache/group/proj/8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a/cache.zip" "--timeout" "10" "--path" "dir/"; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mCreated cache[0;m"
} else {
echo "[0;33mFailed to create cache[0;m"
}
} else {
echo "[0;33mMissing gitlab-runner. Creating cache is disabled.[0;m"
}
}

