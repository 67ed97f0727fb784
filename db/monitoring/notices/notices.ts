import { randomUUID } from 'node:crypto'
import type { Tx } from '../../connection.ts'

export type AlertSeverity = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'
export type AlertType = 'ANOMALY' | 'DRIFT' | 'SENTIMENT'

/** What people of a team are to be told, and what playbooks act upon. */
export type Notice = {
  teamId: string
  /** The subject is an alert, or the evaluation of an execution that scored too low. */
  kind: 'ALERT' | 'EVALUATION'
  subjectId: string
  /** Null: it is about the team as a whole. */
  workflowId: string | null
  /** Null for an evaluation. */
  alertType: AlertType | null
  severity: AlertSeverity
  /** A line of at most 200 characters, and a text, without anything that executions worked on. */
  title: string
  message: string
}

/**
 * Queues a notice in the transaction that found its subject. A subject is told of once: a second notice about it changes
 * nothing. A durable job sends it to the team's channels (alerts only), and starts the playbooks that wait for such.
 */
export async function queueNotice(tx: Tx, notice: Notice): Promise<void> {
  await tx
    .insertInto('notices')
    .values({ id: randomUUID(), ...notice })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
