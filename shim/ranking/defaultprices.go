package ranking

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"loadline.dev/shim/api/loadlinev1"
)

// The lists of manifests/prices; a test holds both against each other.
//
//go:embed prices/*.csv prices/*.csv.gz
var defaultPrices embed.FS

// DefaultCatalogues are the price lists that are asked where none is named.
var DefaultCatalogues = []string{"aws-us-east-1.csv", "azure.csv.gz", "gce-us-central1.csv"}

// builtIn returns the lists of DefaultCatalogues.
var builtIn = sync.OnceValues(func() ([]*loadlinev1.PriceCatalogue, error) {
	var p Policy
	for _, name := range DefaultCatalogues {
		data, err := defaultPrices.ReadFile("prices/" + name)
		if err != nil {
			return nil, err
		}
		if err := p.addList(name, data); err != nil {
			return nil, err
		}
	}
	return p.Prices.lists, nil
})

// AddDefaultCatalogues adds the lists that are built in, unless there are others or the policy wants none.
func (p *Policy) AddDefaultCatalogues() (err error) {
	if p.Prices.Catalogues == nil && len(p.Prices.lists) == 0 {
		p.Prices.lists, err = builtIn()
		p.Prices.lists = slices.Clone(p.Prices.lists)
	}
	return err
}

// mostListBytes bounds a price list that is unpacked: that of a whole cloud in all its regions has less than a tenth.
const mostListBytes = 16 << 20

// addList adds a price list to be asked after those that are there. One that is packed loses the .gz of its name.
func (p *Policy) addList(name string, data []byte) error {
	if plain, packed := strings.CutSuffix(name, ".gz"); packed {
		unpacked, err := unpack(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		name, data = plain, unpacked
	}
	p.Prices.lists = append(p.Prices.lists, &loadlinev1.PriceCatalogue{Name: name, Csv: data})
	return nil
}

func unpack(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	unpacked, err := io.ReadAll(io.LimitReader(reader, mostListBytes+1))
	if err == nil && len(unpacked) > mostListBytes {
		err = fmt.Errorf("more than %d bytes when it is unpacked", mostListBytes)
	}
	return unpacked, err
}
