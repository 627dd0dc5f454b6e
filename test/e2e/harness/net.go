package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
)

var ports struct {
	mu    sync.Mutex
	given map[int]bool // guarded by mu
}

// freePort returns a TCP port of 127.0.0.1 that nobody listens on and that was not given out before. It lies
// below the range from which the kernel takes the ports of outgoing connections, one of which could otherwise
// grab it before the component listens.
func freePort() (int, error) {
	const lowest, count = 20000, 12000
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	for range 200 {
		port := lowest + rand.IntN(count)
		if ports.given[port] {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ports.given[port] = true
		return port, listener.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}

// loopback talks to the components' own ports. They make their certificates themselves, at start and in memory,
// and the connection does not leave the machine; a request with a token is made by the API server's client.
var loopback = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// get returns the body of a URL of a component, asked for with the administrator's token.
func (c *Cluster) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.config.BearerToken)
	response, err := loopback.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, lastLines(string(body), 3))
	}
	return body, nil
}

func (c *Cluster) getOK(ctx context.Context, url string) error {
	_, err := c.get(ctx, url)
	return err
}
