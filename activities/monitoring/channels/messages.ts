import type { SentNotice } from '../../../db/monitoring/channels/deliveries.ts'
import { escapeMarkup } from '../../../workflows/texts.ts'

/** The message about one event, for every kind of channel. `id` stays the same for all tries of a delivery. */
export type NotificationMessage = {
  id: string
  type: 'alert.opened' | 'evaluation.failed' | 'channel.test'
  /** When it was found, ISO 8601. */
  timestamp: string
  data: {
    teamId: string
    noticeId: string | null
    /** The alert, or the evaluation. */
    subjectId: string | null
    workflowId: string | null
    alertType: string | null
    severity: string
    title: string
    message: string
    url: string
  }
}

/** The message of a delivery. */
export function describeNotice(
  delivery: { id: string; teamId: string },
  notice: SentNotice,
  url: string,
): NotificationMessage {
  const { id, kind, subjectId, workflowId, alertType, severity, title, message, createdAt } = notice
  return {
    id: delivery.id,
    type: kind === 'ALERT' ? 'alert.opened' : 'evaluation.failed',
    timestamp: createdAt.toISOString(),
    data: {
      ...{ teamId: delivery.teamId, noticeId: id, subjectId, workflowId, alertType },
      ...{ severity, title, message, url },
    },
  }
}

/** The message that tries a channel out. */
export function describeTest(id: string, teamId: string, url: string): NotificationMessage {
  const about = { noticeId: null, subjectId: null, workflowId: null, alertType: null }
  return {
    id,
    type: 'channel.test',
    timestamp: new Date().toISOString(),
    data: {
      ...about,
      teamId,
      severity: 'LOW',
      title: 'A test of this channel',
      message: 'Somebody tries whether notifications arrive here. Nothing is wrong.',
      url,
    },
  }
}

/**
 * A message as a mail of plain text. Its title is what users have named, so the subject is only for a server of their
 * own.
 */
export function writeNoticeMail({ data }: NotificationMessage): { subject: string; text: string } {
  const facts = [
    `Severity: ${data.severity}`,
    ...(data.alertType ? [`Alert:    ${data.alertType}`] : []),
    ...(data.workflowId ? [`Workflow: ${data.workflowId}`] : []),
    `Team:     ${data.teamId}`,
  ]
  const title = cutLine(data.title)
  const subject = `[${data.severity}] ${title}`.slice(0, MAX_SUBJECT)
  return { subject, text: `${[title, data.message, facts.join('\n'), data.url].join('\n\n')}\n` }
}

/** A message as Slack's incoming webhooks take it; so do those of Mattermost and Rocket.Chat. */
export function writeSlackBody({ data }: NotificationMessage): string {
  const about = [data.severity, data.alertType, data.workflowId && `workflow ${data.workflowId}`]
  const text = [
    `*${escapeSlack(cutLine(data.title))}*`,
    // The message is cut, so that the link stays.
    escapeSlack(data.message.slice(0, MAX_SLACK).toWellFormed()),
    `${about.filter(Boolean).join(' · ')} · <${data.url}>`,
  ]
  return JSON.stringify({ text: text.join('\n') })
}

const MAX_SUBJECT = 250
const MAX_SLACK = 3_000

function cutLine(text: string): string {
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, MAX_SUBJECT)
    .toWellFormed()
}

/**
 * Nothing in a text may name people or channels, or be a link with other words. Mattermost and Rocket.Chat know `@all` and
 * `[words](link)`: a character that is not seen takes them apart.
 */
function escapeSlack(text: string): string {
  return escapeMarkup(text, /[&<>]/g).replaceAll('@', '@\u200b').replaceAll('](', ']\u200b(')
}
