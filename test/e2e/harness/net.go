package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

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
