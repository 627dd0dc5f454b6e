package extender

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// reloadInterval is how often, at most, a handshake looks whether the certificate files changed.
const reloadInterval = time.Second

// CertificateFiles name PEM files. They are read again when they change.
type CertificateFiles struct {
	// Cert and Key identify the server.
	Cert, Key string
	// ClientCA, if set, holds the authorities of which a client needs a certificate.
	ClientCA string
}

func (f CertificateFiles) given() bool {
	return f.Cert != "" || f.Key != "" || f.ClientCA != ""
}

func (f CertificateFiles) check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	}
	if f.ClientCA != "" && f.Cert == "" {
		return errors.New("--client-ca-file needs --tls-cert-file and --tls-private-key-file")
	}
	return nil
}

// certificates serves the TLS configuration of the files as they are now.
type certificates struct {
	files    CertificateFiles
	now      func() time.Time
	reloaded func(ok bool)

	mu       sync.Mutex
	contents [3][]byte   // of Cert, Key and ClientCA when they were last read; all guarded by mu
	config   *tls.Config // of the last contents that were good
	checked  time.Time
}

// newCertificates reads the files for the first time.
func newCertificates(files CertificateFiles, now func() time.Time, reloaded func(ok bool)) (*certificates, error) {
	c := &certificates{files: files, now: now, reloaded: reloaded, checked: now()}
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

// serverConfig returns a configuration that follows the files.
func (c *certificates) serverConfig() *tls.Config {
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
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.checked) < reloadInterval {
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

func (f CertificateFiles) read() (contents [3][]byte, err error) {
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

func (f CertificateFiles) parse(contents [3][]byte) (*tls.Config, error) {
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
	}
	return config, nil
}
