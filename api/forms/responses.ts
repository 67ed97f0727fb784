import { makePlaceToken } from '../../db/executions/waits/places.ts'
import type { Store } from '../../db/scope.ts'

const page = (description: string) => ({ description, type: 'text/html' })

const FAULTS = {
  400: page('The page again, with each fault at its field; or the address is not whole'),
  404: page('There is no such form, or it is not open'),
  429: page('The rate limit is exceeded'),
  500: page('The service failed unexpectedly'),
  503: page('A system that the service depends on is unreachable at the moment'),
}
/** Those of a form that is not for everybody. */
export const ACCESS_FAULTS = {
  401: page('The page that asks for the password, or to sign in'),
  403: page('The form is for others'),
}

/** The responses of what shows a page of a form. */
export const SHOWN = { 200: page('The page'), 409: page('Its time is over'), ...FAULTS }

/** The responses of what takes one. */
export const TAKEN = {
  303: {
    description: 'It was sent; the page that follows is at Location',
    headers: { Location: 'Its path' },
  },
  409: page('It cannot be sent at the moment, or its time is over'),
  413: page('It is too large'),
  415: page('It is no form'),
  ...FAULTS,
}

/** The address that leads a person on from page to page, once they have sent a form. */
export function progressOf({ keys }: Store, executionId: string): string {
  const place = { executionId, nodeId: '', iteration: '' }
  return `/form-progress/${makePlaceToken(keys, 'form progress', place)}`
}
