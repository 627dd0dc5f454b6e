// Package apiserver says what an error of the API server means for a request that was to change something.
package apiserver

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"loadline.dev/shim/autoscaler/cloud"
)

// Outcome returns an error of a request that was to change an object, as a cloud.Provider returns it: as it is where
// the API server has refused the request, so that nothing has changed, and else as one after which nobody knows. A
// proxy before the API server may answer that it is not available after the request was passed on.
func Outcome(err error) error {
	if err == nil || refused(err) {
		return err
	}
	return cloud.Uncertain(err)
}

func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsGone(err) || isOfWebhook(err)
}

// isOfWebhook says whether a webhook did not answer, which is asked before anything is written.
func isOfWebhook(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsInternalError(err) && errors.As(err, &answer) &&
		strings.HasPrefix(answer.Status().Message, "Internal error occurred: failed calling webhook ")
}
