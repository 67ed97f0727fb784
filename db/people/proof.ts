import { sql } from 'kysely'
import type { Store } from '../scope.ts'

/** Whether every e-mail counts as confirmed. */
export function trustsEmails(store: Store): boolean {
  return store.emailProof?.() === 'none'
}

/** The condition for the users `u` whose e-mail counts as confirmed. */
export function hasConfirmed(store: Store) {
  return sql<boolean>`(u.email_confirmed_at is not null or ${trustsEmails(store)}::boolean)`
}
