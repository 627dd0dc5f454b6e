package main

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// keys writes a pair of keys as minisign has them and returns their files.
func keys(t *testing.T, dir, name string) (secret, public string) {
	t.Helper()
	p, s, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := minisign.EncryptKey("a password", s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	secret, public = filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pub")
	for file, content := range map[string][]byte{secret: encrypted, public: text} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return secret, public
}

// buildFlags name the folders that the images of the tests were made of.
func buildFlags() []string {
	built := testBuilds()
	flags := []string{"--build=" + built.amd64}
	if built.arm64 != "" {
		flags = append(flags, "--arm64="+built.arm64, "--arm64-root="+built.arm64Root)
	}
	return flags
}

// A release is made, signed and verified, by us and by minisign and sha256sum; made again it is the same.
func TestReleaseIsVerified(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MINISIGN_PASSWORD", "a password")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	secret, public := keys(t, dir, "ours")
	makeRelease := func(out string) error {
		return run(append([]string{"release", "--images=" + folder(t), "--source=../..", "--out=" + out,
			"--version=" + testVersion, "--key=" + secret}, buildFlags()...))
	}
	verify := func(out, key string) error {
		return run([]string{"verify", "--from=" + out, "--version=" + testVersion, "--key=" + key})
	}
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for _, out := range []string{first, second} {
		if err := makeRelease(out); err != nil {
			t.Fatal(err)
		}
	}
	if err := verify(first, public); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("diff", "-r", first, second).CombinedOutput(); err != nil {
		t.Errorf("made again it is another release: %s", out)
	}
	checks := exec.Command("sh", "-c", "minisign -V -q -p "+public+" -m SHA256SUMS && sha256sum --quiet -c SHA256SUMS")
	checks.Dir = filepath.Join(first, testVersion)
	if out, err := checks.CombinedOutput(); err != nil {
		t.Errorf("minisign and sha256sum: %v: %s", err, out)
	}
	_, foreign := keys(t, dir, "foreign")
	if err := verify(first, foreign); err == nil || !strings.Contains(err.Error(), "not signed by") {
		t.Errorf("a key that has signed nothing: %v", err)
	}
}

// Whatever is changed, added or taken away after signing is found.
func TestVerifyFindsTampering(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MINISIGN_PASSWORD", "a password")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	secret, public := keys(t, dir, "ours")
	if err := run(append([]string{"release", "--images=" + folder(t), "--source=../..", "--out=" + dir,
		"--version=" + testVersion, "--key=" + secret}, buildFlags()...)); err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		return run([]string{"verify", "--from=" + dir, "--version=" + testVersion, "--key=" + public})
	}
	signed := filepath.Join(dir, testVersion)
	entries, err := os.ReadDir(signed)
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d files, error %v", len(entries), err)
	}
	for _, e := range entries {
		path := filepath.Join(signed, e.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := append([]byte{}, content...)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		if verify() == nil {
			t.Errorf("%s was changed and is verified", e.Name())
		}
		os.Remove(path)
		if verify() == nil {
			t.Errorf("%s is missing and the release is verified", e.Name())
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(signed, "extra"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := verify(); err == nil || !strings.Contains(err.Error(), "extra") {
		t.Errorf("a file more: %v", err)
	}
	os.Remove(filepath.Join(signed, "extra"))
	if err := verify(); err != nil {
		t.Errorf("as it was: %v", err)
	}
	if err := run([]string{"verify", "--from=" + dir, "--version=v9.9.9", "--key=" + public}); err == nil {
		t.Error("another version is verified")
	}
}
