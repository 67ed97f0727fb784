import { Hono } from 'hono'
import * as v from 'valibot'
import { testCredential } from '../../activities/credentials/test.ts'
import { readCredential } from '../../db/credentials/credentials.ts'
import { type OpenedCredential, openTeamCredential } from '../../db/credentials/open.ts'
import { type CredentialTest, noteCredentialTest } from '../../db/credentials/tests.ts'
import { Fault, missing } from '../../db/fault.ts'
import { isDatabaseError } from '../../db/operation/outage.ts'
import { readOwner } from '../../db/owners.ts'
import type { Store } from '../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { timeSchema } from '../http/responses.ts'

const TestSchema = v.pipe(
  v.object({
    status: v.picklist(['SUCCESS', 'FAILED']),
    message: v.pipe(v.string(), v.description('What was tried, or what is wrong')),
    testedAt: timeSchema,
  }),
  v.title('CredentialTest'),
)

/** How many tests a team may have under way in one process. */
const MOST_AT_ONCE = 2

const CHANGED = 'It was changed while it was tested: test it again'

/** The route that tries a credential. */
export function createCredentialTestRoutes({
  outside,
  store,
  log,
}: Pick<ApiDeps, 'outside' | 'store' | 'log'>) {
  const seats = createSeats('tests of credentials', { ofTeam: MOST_AT_ONCE })
  return new Hono<AppEnv>().post(
    '/api/credentials/:id/test',
    accept({
      id: 'testCredential',
      tag: 'Credentials',
      summary: 'Test a credential',
      description:
        'Signs in with the credential, and changes nothing there: vendors of models list them, chat services say who ' +
        'the bot is, mail servers and databases are signed in to, and credentials for HTTP are sent to their ' +
        '`testUrl`. Where nothing can be tried, only the data is checked, which the message says. A credential that ' +
        'does not work is a 200 with the status FAILED. A test takes at most 15 s; a team may have two under way.',
      role: 'BUILDER',
      params: ById,
      query: v.object({
        teamId: v.pipe(uuidField, v.description("The credential's team, whose rights are checked")),
      }),
      responses: { 200: { description: 'What the test has said', schema: TestSchema } },
      faults: [503],
    }),
    async (c) => {
      const { teamId } = c.req.valid('query')
      const scope = c.get('scope')
      const { id } = c.req.valid('param')
      if ((await readOwner(store, 'credentials', id)) !== teamId) throw missing('credential')
      const credential = await readCredential(scope, id)
      if (!outside) throw new Fault('UNAVAILABLE', 'This process tests no credentials', { retryAfter: 5 })
      const giveBack = seats.take(scope.userId ?? '', teamId)
      try {
        const opened = await openOrExplain({ store, log }, credential)
        const said =
          'status' in opened
            ? opened
            : await testCredential(
                opened,
                { ...(await outside.forTeam(teamId)), store },
                { signal: c.req.raw.signal },
              )
        const { revision = -1 } = 'status' in opened ? {} : opened
        const testedAt = await noteCredentialTest(scope, { ...credential, revision }, said)
        if (testedAt) return c.json({ ...said, testedAt })
        return c.json({ status: 'FAILED' as const, message: CHANGED, testedAt: new Date() })
      } finally {
        giveBack()
      }
    },
  )
}

/** The credential with its secrets, or that they cannot be read with the keys that this process has. */
async function openOrExplain(
  { store, log }: { store: Store; log: ApiDeps['log'] },
  { id, teamId }: { id: string; teamId: string },
): Promise<OpenedCredential | CredentialTest> {
  try {
    return await openTeamCredential(store, teamId, id)
  } catch (error) {
    if (error instanceof Fault) throw missing('credential')
    if (isDatabaseError(error)) throw error
    log.error({ err: error, credentialId: id }, 'a credential could not be opened')
    return { status: 'FAILED', message: 'Its data cannot be opened with the keys of this service' }
  }
}
