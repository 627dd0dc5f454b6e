// Package certificates serves TLS from files that may change while a server runs.
package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// ReloadInterval is how often, at most, a handshake looks whether the certificate files changed.
const ReloadInterval = time.Second

// Files name PEM files. They are read again when they change.
type Files struct {
	// Cert and Key identify the server.
	Cert, Key string
	// ClientCA, if set, holds the authorities of which a client needs a certificate.
	ClientCA string
	// ClientNames are the names that clients may have: a certificate has one of them as its common name or as an
	// alternative name. Empty: any name will do.
	ClientNames []string
}

// Given says whether any file is named.
func (f Files) Given() bool {
	return f.Cert != "" || f.Key != "" || f.ClientCA != ""
}

// Check returns an error for files that do not go together.
func (f Files) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	}
	if f.ClientCA != "" && f.Cert == "" {
		return errors.New("--client-ca-file needs --tls-cert-file and --tls-private-key-file")
	}
	if len(f.ClientNames) > 0 && f.ClientCA == "" {
		return errors.New("--client-allowed-names needs --client-ca-file")
	}
	if slices.Contains(f.ClientNames, "") {
		return errors.New("--client-allowed-names: a name is empty")
	}
	return nil
}

// allows returns an error for a client whose certificate has another name. A client without a certificate may ask what
// needs none.
func (f Files) allows(state tls.ConnectionState) error {
	if len(f.ClientNames) == 0 || len(state.PeerCertificates) == 0 {
		return nil
	}
	shown := namesOf(state.PeerCertificates[0])
	if slices.ContainsFunc(shown, func(name string) bool { return slices.Contains(f.ClientNames, name) }) {
		return nil
	}
	return fmt.Errorf("a client is named %q, and --client-allowed-names has none of that", shown)
}

func namesOf(cert *x509.Certificate) []string {
	var names []string
	if cert.Subject.CommonName != "" {
		names = append(names, cert.Subject.CommonName)
	}
	names = append(append(names, cert.DNSNames...), cert.EmailAddresses...)
	for _, address := range cert.IPAddresses {
		names = append(names, address.String())
	}
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	return names
}

// Reloader holds the TLS configuration of files as they are now. Safe for concurrent use.
type Reloader struct {
	files    Files
	now      func() time.Time
	reloaded func(ok bool)

	mu       sync.Mutex
	contents [3][]byte   // of Cert, Key and ClientCA when they were last read; all guarded by mu
	config   *tls.Config // of the last contents that were good
	checked  time.Time
}

// Load reads the files for the first time. Time is read from `now`; `reloaded` hears whether changed files could be
// used.
func Load(files Files, now func() time.Time, reloaded func(ok bool)) (*Reloader, error) {
	c := &Reloader{files: files, now: now, reloaded: reloaded, checked: now()}
	contents, err := files.read()
	if err != nil {
		return nil, err
	}
	if c.config, err = files.parse(contents); err != nil {
		return nil, err
	}
	c.contents = contents
	return c, nil
}

// ServerConfig returns a configuration that follows the files.
func (c *Reloader) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current(), nil
		},
	}
}

// current returns the configuration of the files. When they changed into something that cannot be used, such as half
// of a file, the last good one stays.
func (c *Reloader) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.checked) < ReloadInterval {
		return c.config
	}
	c.checked = now
	contents, err := c.files.read()
	if err == nil && same(contents, c.contents) {
		return c.config
	}
	var config *tls.Config
	if err == nil {
		config, err = c.files.parse(contents)
	}
	c.reloaded(err == nil)
	if err != nil {
		klog.ErrorS(err, "The changed certificate files cannot be used; the former ones stay in use")
		return c.config
	}
	klog.InfoS("Read the changed certificate files", "cert", c.files.Cert)
	c.config, c.contents = config, contents
	return c.config
}

func same(a, b [3][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (f Files) read() (contents [3][]byte, err error) {
	for i, name := range [...]string{f.Cert, f.Key, f.ClientCA} {
		if name == "" {
			continue
		}
		if contents[i], err = os.ReadFile(name); err != nil {
			return contents, err
		}
	}
	return contents, nil
}

func (f Files) parse(contents [3][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", f.Cert, f.Key, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair},
	}
	if f.ClientCA != "" {
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return nil, fmt.Errorf("%s: holds no certificate", f.ClientCA)
		}
		// Given, not required: probes have none. Paths that need one say so.
		config.ClientAuth = tls.VerifyClientCertIfGiven
		config.VerifyConnection = f.allows // of sessions that are resumed as well
	}
	return config, nil
}
