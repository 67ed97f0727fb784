import * as v from 'valibot'
import { isMailAddress } from '../../../activities/mail/addresses.ts'
import { NOTIFICATION_CHANNEL_TYPES } from '../../../db/monitoring/channels/channels.ts'
import { DELIVERY_STATUSES } from '../../../db/monitoring/channels/deliveries.ts'
import { PLAYBOOK_SEVERITIES } from '../../../db/monitoring/playbooks/playbooks.ts'
import { findUrlFault } from '../../audit/siem/fields.ts'
import { boundedString, trimmedString, uuidField } from '../../http/fields.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../../http/responses.ts'
import { HELD, mailViewEntries, WHOM } from '../../mail/fields.ts'

const MOST_RECIPIENTS = 20

const address = v.pipe(
  trimmedString(320),
  v.check((text) => isMailAddress(text), 'must be an e-mail address'),
  v.examples(['ada@example.com']),
)

const config = v.pipe(
  v.object(
    {
      recipients: v.pipe(
        v.optional(
          v.pipe(
            v.array(address, 'must be an array'),
            v.minLength(1, 'must have at least one address'),
            v.maxLength(MOST_RECIPIENTS, `must have at most ${MOST_RECIPIENTS} addresses`),
            v.transform((list) => [...new Set(list)]),
          ),
        ),
        v.description('Of EMAIL: who gets a mail, each one of their own'),
      ),
      credentialId: v.pipe(
        v.optional(v.nullable(uuidField)),
        v.description(
          "Of EMAIL: a credential of the team of the type SMTP. Null, or not given: the service's own server",
        ),
      ),
      url: v.pipe(
        v.optional(
          v.pipe(
            boundedString(2_000),
            v.check(
              (url) => findUrlFault(url) === null,
              ({ input }) => findUrlFault(input as string) ?? '',
            ),
          ),
        ),
        v.description(
          'Of SLACK: of an incoming webhook. Of WEBHOOK: of the receiver. It is kept as a secret: only its origin is ' +
            'shown, and sent back like that it stays what it is',
        ),
      ),
    },
    'must be an object',
  ),
  v.description('EMAIL has `recipients` and `credentialId`, the others have a `url`'),
)

const enabled = v.boolean('must be true or false')

export const ChannelBody = v.object({
  name: trimmedString(100),
  type: v.picklist(NOTIFICATION_CHANNEL_TYPES, `must be one of ${NOTIFICATION_CHANNEL_TYPES.join(', ')}`),
  enabled: v.pipe(v.optional(enabled), v.description('Not given: true')),
  config,
})

export const ChannelPatchBody = v.object({
  name: v.optional(trimmedString(100)),
  enabled: v.optional(enabled),
  config: v.optional(config),
})

const channelEntries = {
  id: idSchema,
  teamId: idSchema,
  name: v.string(),
  type: v.picklist(NOTIFICATION_CHANNEL_TYPES),
  enabled: v.boolean(),
  config: v.union([
    v.object({ recipients: v.array(v.string()), credentialId: v.nullable(idSchema) }),
    v.object({ url: v.pipe(v.string(), v.examples(['https://hooks.example.com/[hidden]'])) }),
  ]),
  recipientStates: v.optional(v.pipe(mailViewEntries.recipientStates, v.description(`Of EMAIL: ${WHOM}`))),
  held: v.optional(v.pipe(mailViewEntries.held, v.description(`Of EMAIL: ${HELD}`))),
  createdAt: timeSchema,
  updatedAt: timeSchema,
}

export const ChannelSchema = v.pipe(v.object(channelEntries), v.title('NotificationChannel'))

const secretSchema = v.pipe(
  v.string(),
  v.description('What a webhook is signed with, by the Standard Webhooks. It is not shown again'),
  v.examples(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']),
)

export const NewChannelSchema = v.pipe(
  v.object({ ...channelEntries, secret: v.optional(secretSchema) }),
  v.title('NewNotificationChannel'),
)

export const NewSecretSchema = v.pipe(
  v.object({
    secret: secretSchema,
    previousUntil: v.pipe(timeSchema, v.description('Until then the secret before signs, too')),
  }),
  v.title('NotificationChannelSecret'),
)

export const ChannelTestSchema = v.pipe(
  v.object({
    status: v.picklist(['SUCCESS', 'FAILED']),
    message: v.pipe(v.string(), v.description('What was sent, or what is wrong')),
    testedAt: timeSchema,
  }),
  v.title('NotificationChannelTest'),
)

const DeliverySchema = v.pipe(
  v.object({
    id: v.pipe(idSchema, v.description('Of a webhook: its `webhook-id` is `msg_` and this')),
    noticeId: idSchema,
    target: v.pipe(
      v.string(),
      v.description(
        "`email` for the team's ADMINs, a channel, or an entry of the config that names no channel",
      ),
    ),
    channelId: v.nullable(idSchema),
    channelName: v.nullable(v.string()),
    playbookId: v.pipe(
      v.nullable(idSchema),
      v.description('The playbook that sends it; null: the config says so'),
    ),
    kind: v.picklist(['ALERT', 'EVALUATION']),
    severity: v.picklist(PLAYBOOK_SEVERITIES),
    title: v.string(),
    status: v.picklist(DELIVERY_STATUSES),
    attempts: countSchema,
    lastError: v.nullable(v.string()),
    nextAttemptAt: v.nullable(timeSchema),
    createdAt: timeSchema,
    settledAt: v.nullable(timeSchema),
  }),
  v.title('NotificationDelivery'),
)

export const DeliveryPage = pageSchema('NotificationDeliveryPage', DeliverySchema)
