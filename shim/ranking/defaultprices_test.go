package ranking

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The lists that are built in are those that are shipped.
func TestDefaultCataloguesAreThoseOfTheManifests(t *testing.T) {
	shipped, err := filepath.Glob("../../manifests/prices/*.csv*")
	if err != nil || len(shipped) != len(DefaultCatalogues) {
		t.Fatalf("shipped: %v, %v; built in: %v", shipped, err, DefaultCatalogues)
	}
	for _, name := range DefaultCatalogues {
		want, err := os.ReadFile(filepath.Join("../../manifests/prices", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := defaultPrices.ReadFile("prices/" + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from manifests/prices, or is not there: %v; copy it", name, err)
		}
	}
	p := Default()
	if err := p.AddDefaultCatalogues(); err != nil || len(p.PriceModel().GetCatalogues()) != len(DefaultCatalogues) {
		t.Errorf("added %d lists, %v", len(p.PriceModel().GetCatalogues()), err)
	}
}
