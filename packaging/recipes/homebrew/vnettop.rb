# Homebrew on Linux: brew install --build-from-source ./vnettop.rb. The sum is written by packaging/release/recipes.
class Vnettop < Formula
  desc "Virtual network interfaces, softirq load and migrating threads on one screen"
  homepage "https://forge.example.org/vnettop/vnettop"
  url "https://forge.example.org/vnettop/vnettop/releases/download/v0.2.0/vnettop-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "python@3.13" => :build
  depends_on "rust" => :build
  # It reads the Linux kernel: netlink, /proc, BPF.
  depends_on :linux

  def install
    system "cargo", "build", "--locked", "--profile", "dist", "--bin", "vnettop", "--example", "pages"
    (buildpath/"NOTICES").write Utils.safe_popen_read("packaging/notices")
    bin.install "target/dist/vnettop"
    mkdir "pages"
    system "target/dist/examples/pages", "pages", File.mtime("CHANGELOG.md").utc.strftime("%F")
    man1.install Dir["pages/*.1"]
    bash_completion.install "pages/vnettop.bash" => "vnettop"
    zsh_completion.install "pages/_vnettop"
    fish_completion.install "pages/vnettop.fish"
    system "packaging/manual", doc.to_s
    doc.install "NOTICES"
    (doc/"examples").install "pages/config.toml"
  end

  def caveats
    <<~EOS
      sudo does not look into Homebrew's folder: sudo #{opt_bin}/vnettop, or give the file
      capabilities (docs/rights.md in #{doc}).
    EOS
  end

  test do
    assert_equal "vnettop #{version}", shell_output("#{bin}/vnettop --version").strip
    # A frame of the built-in recording needs no right and no terminal.
    assert_match "kp920", shell_output("#{bin}/vnettop replay --at 0:30 --print 120x40")
  end
end
