package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// clockSkew is how far behind the clock of a client may be.
const clockSkew = 5 * time.Minute

// SelfSigned returns a certificate for a server with its key, as PEM. A client trusts it by having it as its one
// authority; it can sign nothing. `hosts` are the names and addresses by which clients reach the server.
func SelfSigned(hosts []string, from time.Time, lifetime time.Duration) (cert, key []byte, err error) {
	if lifetime <= 0 {
		return nil, nil, fmt.Errorf("lifetime %v: must be positive", lifetime)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "loadline gateway"},
		NotBefore: from.Add(-clockSkew), NotAfter: from.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if err := addHosts(template, hosts); err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// addHosts enters addresses as such: a client that dials one looks for nothing else.
func addHosts(template *x509.Certificate, hosts []string) error {
	if len(hosts) == 0 {
		return errors.New("no host: a certificate needs the names by which clients reach the server")
	}
	for _, host := range hosts {
		if address, err := netip.ParseAddr(host); err == nil {
			template.IPAddresses = append(template.IPAddresses, address.AsSlice())
			continue
		}
		if host == "" {
			return errors.New("host: must not be empty")
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return nil
}
