package ranking

import (
	"bytes"
	"embed"
	"io"
	"slices"
	"strings"
	"sync"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/unwrap"
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
		unpacked, err := unwrap.Text(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if data, err = io.ReadAll(unpacked); err != nil {
			return nil, err
		}
		p.addList(name, data)
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

// mostListBytes bounds a price list: that of a whole cloud in all its regions has less than a tenth.
const mostListBytes = 16 << 20

// addList adds a price list to be asked after those that are there, without the .gz of the name of its file.
func (p *Policy) addList(name string, data []byte) {
	p.Prices.lists = append(p.Prices.lists,
		&loadlinev1.PriceCatalogue{Name: strings.TrimSuffix(name, ".gz"), Csv: data})
}
