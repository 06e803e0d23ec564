# Nix: nix-build packaging/recipes/nix, from a checkout. nixpkgs' own would fetch the source of a release in place of `cleanSource`.
{
  lib,
  rustPlatform,
  installShellFiles,
  python3,
}:

rustPlatform.buildRustPackage rec {
  pname = "vnettop";
  version = "0.2.0";

  # cleanSource leaves out every *.o, and the BPF objects with them.
  src = lib.cleanSourceWith {
    src = ../../..;
    filter =
      path: type:
      (lib.cleanSourceFilter path type || lib.hasSuffix ".bpf.o" path) && baseNameOf path != "target";
  };
  cargoLock.lockFile = ../../../Cargo.lock;

  nativeBuildInputs = [
    installShellFiles
    python3
  ];

  buildType = "dist";
  cargoBuildFlags = [
    "--bin=vnettop"
    "--example=pages"
  ];
  # Those that need no root; they fetch nothing. Two groups call programs of /usr/bin, which a sandbox has not.
  checkType = "debug";
  preCheck = "export VNETTOP_FAST=1";
  cargoTestFlags = [
    "--workspace"
    "--lib"
    "--test=pure"
  ];
  checkFlags = [
    "--skip=kubectl::"
    "--skip=release::"
  ];

  postInstall = ''
    pages=$(find target -path '*/dist/examples/pages' -type f | head -n 1)
    patchShebangs packaging/notices packaging/manual
    packaging/notices > NOTICES
    mkdir -p pages
    "$pages" pages "$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)"
    installManPage pages/*.1
    installShellCompletion --cmd vnettop --bash pages/vnettop.bash --zsh pages/_vnettop --fish pages/vnettop.fish
    packaging/manual $out/share/doc/vnettop
    install -m644 -t $out/share/doc/vnettop NOTICES
    install -m644 -t $out/share/doc/vnettop/examples pages/config.toml
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    [ "$($out/bin/vnettop --version)" = "vnettop ${version}" ]
  '';

  meta = {
    description = "Virtual network interfaces, softirq load and migrating benchmark threads on one screen";
    homepage = "https://forge.example.org/vnettop/vnettop";
    license = with lib.licenses; [
      mit
      asl20
    ];
    platforms = [
      "x86_64-linux"
      "aarch64-linux"
    ];
    mainProgram = "vnettop";
  };
}
