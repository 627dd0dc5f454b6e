package simcloud

import "slices"

// Deleted returns the machines that are gone, in order.
func (c *Cloud) Deleted() []Deleted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// Asked returns the nodes of which the deletion was asked for, also in vain.
func (c *Cloud) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// DeletedTwice returns the nodes of which the deletion was asked for again.
func (c *Cloud) DeletedTwice() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.twice)
}

// Target returns the target size of a group.
func (c *Cloud) Target(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[id].target
}

// Sizes returns the smallest and the largest target size that a group has had.
func (c *Cloud) Sizes(id string) (smallest, largest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[id].smallest, c.groups[id].largest
}

// Requests returns how often a target size has changed.
func (c *Cloud) Requests() (requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		requests += g.resized
	}
	return requests
}
