package extender

import (
	"fmt"
	"net"
	"net/netip"
)

const (
	// maxConnections bounds the connections of one listener, and maxOfClient those of one client. A scheduler keeps two.
	maxConnections = 256
	maxOfClient    = 128
	// maxOfProber bounds those of one client of the port for probes and metrics, which anybody in the cluster may reach.
	maxOfProber = 32
)

// checkAddress refuses an address that others than this machine can reach when there is no TLS: whoever can ask
// learns which nodes there are and how loaded they are.
func checkAddress(address string, encrypted bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: must be HOST:PORT: %w", address, err)
	}
	if encrypted || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("address %q can be reached from other machines: give a certificate with --tls-cert-file and "+
		"--tls-private-key-file, or listen on 127.0.0.1", address)
}

// isLoopback knows addresses and the name localhost. Other names may point anywhere, and elsewhere tomorrow.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
