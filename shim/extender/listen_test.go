package extender

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/certificates"
	"loadline.dev/shim/internal/ports"
)

func TestPublicAddressesNeedTLS(t *testing.T) {
	for address, loopback := range map[string]bool{
		"127.0.0.1:8888": true, "127.8.7.6:1": true, "[::1]:8888": true, "localhost:8888": true,
		"[::ffff:127.0.0.1]:1": true,
		":8888":                false, "0.0.0.0:8888": false, "[::]:8888": false, "10.0.0.7:8888": false,
		"gateway:8888":            false,
		"localhost.example.com:1": false, "192.168.1.1:1": false, "[fe80::1]:1": false,
	} {
		err := checkAddress(address, false)
		if (err == nil) != loopback {
			t.Errorf("%s without TLS: %v", address, err)
		}
		if err != nil &&
			(!strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "--tls-cert-file")) {
			t.Errorf("the error names neither the address nor the way out: %v", err)
		}
		if err := checkAddress(address, true); err != nil {
			t.Errorf("%s with TLS: %v", address, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1", "8888", "::1:8888"} {
		if err := checkAddress(address, true); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Invariant H5.
func TestOptionsThatContradictEachOther(t *testing.T) {
	for says, o := range map[string]Options{
		"go together":                 {Address: "127.0.0.1:0", Certificates: certificates.Files{Cert: "c"}},
		"--client-ca-file needs":      {Address: "127.0.0.1:0", Certificates: certificates.Files{ClientCA: "c"}},
		"must not be negative":        {Address: "127.0.0.1:0", Timeout: -1},
		`health address "x"`:          {Address: "127.0.0.1:0", HealthAddress: "x"},
		`view "Bad_View": must be`:    {Address: "127.0.0.1:0", View: "Bad_View"},
		"can be reached from other":   {Address: "0.0.0.0:0"},
		`address "x": must be HOST:P`: {Address: "x"},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

// A client with all connections that it may keep leaves room for a probe, which is from elsewhere.
func TestIdleConnectionsKeepNoProbeOut(t *testing.T) {
	listener, err := ports.Listen("127.0.0.1:0", maxConnections, maxOfProber)
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ports.IdleTime)
	go server.Serve(listener)
	defer server.Close()
	address := listener.Addr().String()
	for range maxConnections {
		idle, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		fmt.Fprintf(idle, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") // it may be closed already
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	probe := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext}}
	response, err := probe.Get("http://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}
