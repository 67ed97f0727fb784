import type { Store } from '../../scope.ts'

/** The most ADMINs of a team that get mails. A team has fewer, unless it was set up to send many mails. */
const MOST = 100

/** The addresses of a team's ADMINs that are theirs, by all that the service knows, in the order in which they joined. */
export async function listAdminAddresses(store: Store, teamId: string): Promise<string[]> {
  const rows = await store.db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.userId')
    .select('u.email')
    .where('m.teamId', '=', teamId)
    .where('m.role', '=', 'ADMIN')
    .$if(store.emailProof?.() !== 'none', (some) => some.where('u.emailConfirmedAt', 'is not', null))
    // Leaves out accounts that have lost their address.
    .where('u.email', 'not like', '%.invalid')
    .orderBy('m.joinedAt')
    .orderBy('u.id')
    .limit(MOST)
    .execute()
  return rows.map(({ email }) => email)
}
