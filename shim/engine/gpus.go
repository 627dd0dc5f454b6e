package engine

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"loadline.dev/shim/api/loadlinev1"
)

// gpuTime bounds the question which resources are GPUs.
const gpuTime = 5 * time.Second

// GPUResources returns what asks an engine which resources are GPUs, until it has answered once.
func GPUResources(conn grpc.ClientConnInterface) func() ([]string, error) {
	var lock sync.Mutex
	var names []string
	return func() ([]string, error) {
		lock.Lock()
		defer lock.Unlock()
		if len(names) > 0 {
			return names, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), gpuTime)
		defer cancel()
		answer, err := loadlinev1.NewClusterStateClient(conn).Describe(ctx, &loadlinev1.DescribeRequest{})
		if err != nil {
			return nil, err
		}
		names = answer.GetGpuResources()
		return names, nil
	}
}
