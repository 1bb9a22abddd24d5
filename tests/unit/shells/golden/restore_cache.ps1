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
echo "[32;1mChecking cache for k...[0;m"
$glr_failed = $false
Try { & "gitlab-runner" "cache-extractor" "--file" "../../../../../cache/group/proj/k/cache.zip" "--timeout" "10"; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mSuccessfully extracted cache[0;m"
} else {
echo "[0;33mFailed to extract cache[0;m"
echo "[32;1mChecking cache for other...[0;m"
$glr_failed = $false
Try { & "gitlab-runner" "cache-extractor" "--file" "../../../../../cache/group/proj/other/cache.zip" "--timeout" "10"; if($LASTEXITCODE) { $glr_failed = $true } } Catch { $glr_failed = $true }
if(!$glr_failed) {
echo "[32;1mSuccessfully extracted cache[0;m"
} else {
echo "[0;33mFailed to extract cache[0;m"
}
}
} else {
echo "[0;33mMissing gitlab-runner. Extracting cache is disabled.[0;m"
}
}

