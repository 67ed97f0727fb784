import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import {
  type ChoiceView,
  decideMailChoice,
  MAIL_CHOICES,
  type MailChoice,
  readMailChoice,
} from '../../db/mail/choices.ts'
import type { Store } from '../../db/scope.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString } from '../http/fields.ts'
import { CHOICE_PAGE_POLICY, renderChoicePage, renderUnknownLink } from './page.ts'

const token = v.pipe(boundedString(100), v.description('What the mail has; it is signed'))
const choice = v.picklist(MAIL_CHOICES, `must be one of ${MAIL_CHOICES.join(', ')}`)
const Link = v.object({ token })
const LinkWithChoice = v.object({ token, choice })

const PAGES = {
  200: { description: 'The page, with what was said so far', type: 'text/html' },
  404: { description: 'The link leads nowhere', type: 'text/html' },
}

/**
 * The routes that the links of mails lead to. Opening one does nothing, because programs that scan mail open links too:
 * a button does.
 */
export function createMailChoiceRoutes({ store }: { store: Store }) {
  const rule = { tag: 'Monitoring', role: 'public', responses: PAGES } as const
  return new Hono<AppEnv>()
    .get(
      '/mail/:token',
      accept({
        ...rule,
        id: 'showMailChoices',
        summary: "Show the page where somebody says whether a team's mails may come",
        params: Link,
      }),
      async (c) => {
        const { token } = c.req.valid('param')
        return respond(c, await readMailChoice(store, token), `${token}/`)
      },
    )
    .get(
      '/mail/:token/:choice',
      accept({
        ...rule,
        id: 'showMailChoice',
        summary: 'The same, with one of the buttons first',
        params: LinkWithChoice,
      }),
      async (c) => {
        const { token, choice } = c.req.valid('param')
        return respond(c, await readMailChoice(store, token), '', choice)
      },
    )
    .post(
      '/mail/:token/:choice',
      accept({
        ...rule,
        id: 'chooseMail',
        summary: "Say whether a team's mails may come",
        description:
          'By the button of the page, or by a mail program (RFC 8058: `List-Unsubscribe-Post`). `yes` and `stop` are ' +
          'about one team, `never` about all. It needs no body, and reads none; the same again changes nothing.',
        params: LinkWithChoice,
      }),
      async (c) => {
        const { token, choice } = c.req.valid('param')
        return respond(c, await decideMailChoice(store, token, choice), '', choice)
      },
    )
}

function respond(c: Context<AppEnv>, view: ChoiceView | undefined, base: string, wanted?: MailChoice) {
  c.header('Content-Security-Policy', CHOICE_PAGE_POLICY)
  // Without it a browser names no origin when the button is pressed, and is taken for a page of others.
  c.header('Referrer-Policy', 'same-origin')
  return view ? c.html(renderChoicePage(view, base, wanted), 200) : c.html(renderUnknownLink(), 404)
}
