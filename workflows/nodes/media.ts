import * as v from 'valibot'
import { described } from '../object.ts'
import { askedFilesField } from './conversation.ts'
import {
  anyObject,
  computed,
  credentialField,
  demandKeys,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import { INTO, intoField } from './into.ts'
import { ASKED } from './models.ts'

/** The most images that one call may make. */
const MAX_IMAGES = 10
export const imageCountField = wholeNumber(1, MAX_IMAGES)

/** Fields of the vendor's requests that the node sets itself. */
export const SET_FIELDS = ['model', 'file', 'image', 'input', 'prompt', 'voice', 'n', 'stream'] as const

/** What an AI_MEDIA does. */
export type MediaOperation = 'transcribe' | 'translate' | 'speak' | 'image'

/** Node types whose models hear, speak and draw. */
export const MEDIA_NODES = {
  AI_MEDIA: nodeTypeRow('effect', {
    summary:
      'Has a model write down what is said in a file, speak a text, or make images; outputs {text}, {file} or {files}.',
    config: v.pipe(
      v.object(
        described(
          {
            credentialId: credentialField,
            model: textField,
            operation: oneOf('transcribe', 'translate', 'speak', 'image'),
            file: v.optional(
              v.union([textField, anyObject], 'must be a file or an expression that gives one'),
            ),
            text: v.optional(textField),
            voice: v.optional(textField),
            files: v.optional(askedFilesField),
            count: v.optional(computed(imageCountField)),
            options: v.optional(computed(anyObject)),
            into: v.optional(intoField),
          },
          {
            ...ASKED,
            operation:
              'What it does: transcribe writes down what is said, translate does so in English, speak reads a text aloud, image makes images.',
            file: 'The sound: a file of this execution.',
            text: 'What is spoken, or what the images show.',
            voice: 'The voice, as the vendor names it. Without it alloy.',
            files: 'Images to be changed: files of this execution. Without any new ones are made.',
            count: 'How many images are made.',
            options:
              'More fields of the request, in the words of the vendor: language, size, response_format.',
            into: INTO,
          },
        ),
      ),
      demandKeys({ transcribe: ['file'], translate: ['file'], speak: ['text'], image: ['text'] }),
      v.forward(
        v.check(
          ({ options }) =>
            typeof options !== 'object' || !SET_FIELDS.some((key) => Object.hasOwn(options, key)),
          `must not have ${SET_FIELDS.join(', ')}: the node sets them itself`,
        ),
        ['options'],
      ),
    ),
    main: ['credentialId', 'model', 'operation'],
    mainBy: {
      key: 'operation',
      keys: {
        transcribe: ['file'],
        translate: ['file'],
        speak: ['text', 'voice'],
        image: ['text', 'files', 'count'],
      },
    },
    credentialUses: ['LLM'],
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 300_000,
    queue: 'models',
  }),
} as const
