import { sql } from 'kysely'
import { change } from '../change.ts'
import { missing } from '../fault.ts'
import type { Scope } from '../scope.ts'
import { cleanText } from '../text.ts'

/** What a test of a credential has said. `message` has no secrets any more. */
export type CredentialTest = { status: 'SUCCESS' | 'FAILED'; message: string }

const MAX_MESSAGE = 1_000

/** The credential as it was when its test began. */
type Tested = { id: string; teamId: string; name: string; type: string; revision: number; updatedAt: Date }

/**
 * Notes what the test of a credential has said (BUILDER, as it is now), and when. Undefined, and only the audit has it,
 * if somebody has changed the data since the test began: the data was used all the same. Tokens that the service has
 * renewed by itself are no such change. Throws NOT_FOUND if it is gone, with an audit entry, too.
 */
export async function noteCredentialTest(
  scope: Scope,
  { id, teamId, name, type, revision, updatedAt }: Tested,
  { status, message }: CredentialTest,
): Promise<Date | undefined> {
  const { gone, testedAt } = await change(scope, 'CREDENTIAL_TESTED', teamId, async (tx) => {
    const noted = await tx
      .updateTable('credentials')
      .set({
        testStatus: status,
        testMessage: cleanText(message, MAX_MESSAGE),
        lastTestedAt: sql<Date>`now()`,
      })
      .where('id', '=', id)
      .where('teamId', '=', teamId)
      .where((eb) =>
        eb.or([
          eb('revision', '=', revision),
          eb(sql<Date>`date_trunc('milliseconds', updated_at)`, '=', updatedAt),
        ]),
      )
      .returning('lastTestedAt')
      .executeTakeFirst()
    const row = await tx.selectFrom('credentials').select('id').where('id', '=', id).executeTakeFirst()
    const meanwhile = noted ? {} : { meanwhile: row ? 'changed' : 'deleted' }
    const result = { gone: row === undefined, testedAt: noted?.lastTestedAt ?? undefined }
    return { result, resourceId: id, details: { name, type, status, ...meanwhile } }
  })
  if (gone) throw missing('credential')
  return testedAt
}
