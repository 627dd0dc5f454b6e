package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// errTooLarge is a body that has more bytes than are read.
var errTooLarge = errors.New("the answer is too large")

// transport bounds what a server sends, after decompression, and states the token. It follows no redirection: the token
// is for this server.
type transport struct {
	next      http.RoundTripper
	tokenFile string
	most      int64
}

func newTransport(options *PrometheusOptions) (*transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxResponseHeaderBytes = 64 << 10
	if options.CAFile != "" {
		pem, err := os.ReadFile(options.CAFile)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", options.CAFile)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &transport{next: base, tokenFile: options.TokenFile, most: options.MostBytes}, nil
}

func (t *transport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server redirects, which is not followed: name the address that it redirects to")
	}}
}

// RoundTrip asks once.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.tokenFile != "" {
		token, err := os.ReadFile(t.tokenFile)
		if err != nil {
			return nil, err
		}
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer.Body = &boundedBody{ReadCloser: answer.Body, left: t.most}
	return answer, nil
}

// boundedBody ends with an error where there is more than is read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}
