package cli

import "fmt"

// cutShortLines say that an answer was cut short, what of it is missing, and what was used up, as the engine names it:
// "work", "time" or "memory". There is none if nothing was cut short.
func cutShortLines(missing, by string) []string {
	if by == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s: the %s that the question may take was used up.", missing, by)}
}

// optionsCutShort is what is missing of options to grow.
const optionsCutShort = "Some options to grow may take more pods than they say"
