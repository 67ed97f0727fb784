import * as v from 'valibot'
import { CREDENTIAL_TYPE_NAMES } from '../../db/credentials/types.ts'
import type { MovedSecret } from '../../db/secrets/keeping.ts'
import { idSchema } from '../http/responses.ts'

const moved = v.object({
  name: v.pipe(v.string(), v.examples(['Orders: In'])),
  type: v.picklist(CREDENTIAL_TYPE_NAMES),
  paths: v.pipe(
    v.array(v.string()),
    v.description('Where the secret was in the graph; the nodes name the credential by its id now'),
    v.examples([['nodes[0].config.signature.secret']]),
  ),
})

/** For the descriptions of routes that save a graph. */
export const ABOUT_SECRETS =
  'Secrets that are written into requests are refused; those of webhooks and of CRYPTO are moved into credentials, ' +
  'which `credentials` lists.'

/** A credential that has got a secret of a graph. */
const MovedSecretSchema = v.pipe(v.object({ id: idSchema, ...moved.entries }), v.title('MovedSecret'))

/** One that would be made. */
export const PlannedSecretSchema = v.pipe(
  v.object({ id: v.nullable(idSchema), ...moved.entries }),
  v.title('PlannedSecret'),
)

/** The credentials that have got secrets of the graph that a response is about. */
export const movedEntry = {
  credentials: v.optional(
    v.pipe(
      v.array(MovedSecretSchema),
      v.description(
        'New credentials, which secrets of the graph were moved into. Left out if there are none',
      ),
    ),
  ),
}

/** The entry of a response, if there is anything to say. */
export function listMovedSecrets(credentials: MovedSecret[]): { credentials?: MovedSecret[] } {
  return credentials.length > 0 ? { credentials } : {}
}
