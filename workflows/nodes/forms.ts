import * as v from 'valibot'
import { formSchema } from '../graph/form.ts'
import { described, strictObject } from '../object.ts'
import {
  computed,
  credentialField,
  demandSecret,
  nameField,
  nodeTypeRow,
  oneOf,
  textField,
} from './fields.ts'
import { waitLimitField } from './pauses.ts'

const ACCESS = ['none', 'password', 'members'] as const
export type FormAccess = (typeof ACCESS)[number]

/** The hidden field by which the page tells that a form is sent twice. */
export const SUBMISSION_FIELD = '_submission'

const words = v.pipe(v.string('must be a string'), v.maxLength(10_000, 'must have at most 10000 characters'))
const caption = v.pipe(textField, v.maxLength(200, 'must have at most 200 characters'))

const HTTPS = 'must be an address that begins with https://, without a user or password'

/** Where a form may lead: out of this service, and only over https. */
const redirectField = v.pipe(
  v.string('must be a string'),
  v.maxLength(2_000, 'must have at most 2000 characters'),
  v.check((text) => readRedirect(text) !== undefined, HTTPS),
)

/** The address that a form leads on to, as browsers write it; undefined if it must not lead there. */
export function readRedirect(text: string): string | undefined {
  const url = URL.parse(text.trim())
  return url?.protocol === 'https:' && !url.username && !url.password ? url.href : undefined
}

const pageForm = v.pipe(
  formSchema,
  v.check(
    ({ properties }) => !Object.hasOwn(properties, SUBMISSION_FIELD),
    `must not have a field ${SUBMISSION_FIELD}, which the page itself has`,
  ),
)

/** The last page of a form. */
export const completionField = v.pipe(
  strictObject(
    described(
      {
        show: v.optional(oneOf('text', 'redirect', 'output'), 'text'),
        title: v.optional(caption),
        text: v.optional(words),
        url: v.optional(computed(redirectField)),
        when: v.optional(oneOf('sent', 'ended')),
      },
      {
        show: 'A text, another page by its address, or what the execution has output, as text.',
        title: 'What stands above the text.',
        text: 'The text. Without it: that the answers have arrived.',
        url: 'The address, which begins with https://.',
        when: 'At once when the form is sent, or when the execution has ended. Pages that follow come first.',
      },
    ),
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { show, url } = dataset.value
    const path = { type: 'object', origin: 'value', input: dataset.value, key: 'url', value: url } as const
    if (show === 'redirect' && url === undefined) addIssue({ message: 'is required', path: [path] })
    if (show !== 'redirect' && url !== undefined)
      addIssue({ message: 'is only for show: redirect', path: [path] })
  }),
)
export type Completion = v.InferOutput<typeof completionField>

const passwordField = v.pipe(
  strictObject(
    described(
      { value: v.optional(textField), credentialId: v.optional(credentialField) },
      {
        value: 'The password. It is moved into a credential when the workflow is saved.',
        credentialId: 'A credential that has the password.',
      },
    ),
  ),
  demandSecret('value'),
)

const shape = v.optional(v.literal('n8n', 'must be n8n'))
const SHAPE = "Gives the answers the shape that n8n's forms have."

const pageEntries = {
  title: v.optional(caption),
  description: v.optional(words),
  button: v.optional(caption),
}
const PAGE_HELP = {
  title: 'What stands above the page.',
  description: 'What is said about the page.',
  button: 'What the button says. Without it: Send.',
}

/** Node types that ask people outside of the team, on pages of the service. */
export const FORM_NODES = {
  FORM_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution for each form that is sent at /forms/:workflowId/:path, a page of the service; its output ' +
      'is {form, query, submittedAt}, with access members also {user}.',
    config: v.pipe(
      v.object(
        described(
          {
            path: nameField,
            form: pageForm,
            ...pageEntries,
            access: v.optional(v.picklist(ACCESS, `must be one of ${ACCESS.join(', ')}`), 'none'),
            password: v.optional(passwordField),
            completion: v.optional(completionField),
            shape,
          },
          {
            path: 'The end of the address: /forms/<workflow>/<path>.',
            form: 'What to fill in, as a JSON Schema.',
            ...PAGE_HELP,
            access: 'Who may fill it in: anybody, who knows the password, or signed-in members of the team.',
            password: 'What is asked before the form is shown, with access: password.',
            completion: 'What is shown when the form has been sent.',
            shape: SHAPE,
          },
        ),
      ),
      v.rawCheck(({ dataset, addIssue }) => {
        if (!dataset.typed) return
        const { access, password } = dataset.value
        const input = dataset.value
        const path = { type: 'object', origin: 'value', input, key: 'password', value: password } as const
        if (access === 'password' && !password)
          addIssue({ message: 'is required with access: password', path: [path] })
        if (access !== 'password' && password)
          addIssue({ message: 'is only for access: password', path: [path] })
      }),
    ),
    main: ['path', 'title', 'description', 'form', 'access', 'password', 'completion'],
    credentialUses: ['SIGNATURE'],
    credentialPaths: [['password', 'credentialId']],
  }),
  FORM: nodeTypeRow('pause', {
    summary:
      'Shows a further page to the person who fills in the form that started the execution, and waits until it is ' +
      'sent; outputs {form, submittedAt}. Its one-time address is $execution.resumeUrls.<node id>. With completion it ' +
      'is the last page, and passes its input on.',
    config: v.pipe(
      v.object(
        described(
          {
            form: v.optional(pageForm),
            ...pageEntries,
            timeoutMs: v.optional(computed(waitLimitField)),
            completion: v.optional(completionField),
            shape,
          },
          {
            form: 'What to fill in, as a JSON Schema.',
            ...PAGE_HELP,
            timeoutMs:
              'How long it waits, in milliseconds, before it leaves by timeout. Without it for ever.',
            completion: 'In the place of a form: the last page.',
            shape: SHAPE,
          },
        ),
      ),
      v.rawCheck(({ dataset, addIssue }) => {
        if (!dataset.typed) return
        const { form, completion } = dataset.value
        const input = dataset.value
        const path = { type: 'object', origin: 'value', input, key: 'form', value: form } as const
        if (!form && !completion) addIssue({ message: 'is required, unless completion is set', path: [path] })
        if (form && completion) addIssue({ message: 'cannot be set together with completion', path: [path] })
        if (completion?.when) {
          const message = 'cannot be set here: the page is shown when the execution comes to it'
          addIssue({ message, path: [{ ...path, key: 'completion', value: completion }] })
        }
      }),
    ),
    main: ['title', 'description', 'form', 'timeoutMs', 'completion'],
    handles: ({ completion }) => (completion ? [null] : [null, 'timeout']),
  }),
} as const
