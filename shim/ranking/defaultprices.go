package ranking

import (
	"embed"

	"loadline.dev/shim/api/loadlinev1"
)

// The lists of manifests/prices; a test holds both against each other.
//
//go:embed prices/*.csv
var defaultPrices embed.FS

// DefaultCatalogues are the price lists that are asked where none is named.
var DefaultCatalogues = []string{"aws-us-east-1.csv", "gce-us-central1.csv"}

// AddDefaultCatalogues adds the lists that are built in.
func (p *Policy) AddDefaultCatalogues() error {
	for _, name := range DefaultCatalogues {
		data, err := defaultPrices.ReadFile("prices/" + name)
		if err != nil {
			return err
		}
		p.Prices.lists = append(p.Prices.lists, &loadlinev1.PriceCatalogue{Name: name, Csv: data})
	}
	return nil
}
