import { sql } from 'kysely'
import { change } from '../change.ts'
import { missing } from '../fault.ts'
import type { Scope } from '../scope.ts'
import { cleanText } from '../text.ts'

/** The result of testing a credential. The secrets in `message` are masked already. */
export type CredentialTest = { status: 'SUCCESS' | 'FAILED'; message: string }

const MAX_MESSAGE = 1_000

/** The credential as it was when its test began. */
type Tested = { id: string; teamId: string; name: string; type: string; revision: number; updatedAt: Date }

/**
 * Notes the result of testing a credential (BUILDER, as it is now), and the time. Undefined, with only an audit entry,
 * if the data was changed since the test began: the old data was used all the same. Tokens that the service has renewed
 * by itself are not such a change. Throws NOT_FOUND, also with an audit entry, if the credential is gone.
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
