package cli

import (
	"loadline.dev/shim/api/loadlinev1"
)

// priceSources are the parts of a sum of prices, by their sources. Amounts are US dollars per hour.
type priceSources struct {
	Given     float64  `json:"given"`
	Provider  float64  `json:"provider"`
	List      float64  `json:"list"`
	SpotRatio float64  `json:"spotRatio"`
	Estimate  float64  `json:"estimate"`
	Reserved  float64  `json:"reserved"`
	Licences  float64  `json:"licences"`
	Notes     []string `json:"notes"`
}

func newPriceSources(s *loadlinev1.PriceSources) priceSources {
	return priceSources{s.GetGivenUsdPerHour(), s.GetProviderUsdPerHour(), s.GetListUsdPerHour(),
		s.GetSpotRatioUsdPerHour(), s.GetEstimateUsdPerHour(),
		s.GetReservedUsdPerHour(), s.GetLicenceUsdPerHour(), priceNotes(s)}
}

// priceNotes says what prices rest on, and which were not believed.
func priceNotes(s *loadlinev1.PriceSources) []string {
	return append(append([]string{}, s.GetWarnings()...), s.GetNotes()...)
}
